#include <stdint.h>
#include <string.h>
#include <math.h>
static inline float ex(float d){ float t=d*1.44269504f+12582912.0f;int32_t n;memcpy(&n,&t,4);n-=0x4b400000;float nf=t-12582912.0f; float r=d-nf*0.693145752f; r-=nf*1.42860677e-6f;
 float p=1.3981999507e-3f; p=p*r+8.3334519073e-3f; p=p*r+4.1665795894e-2f; p=p*r+1.6666665459e-1f; p=p*r+5.0000001201e-1f; p=p*r*r+r+1.0f;
 int32_t b=(n+127)<<23; float s; memcpy(&s,&b,4); return p*s; } /* no clamp: wraps below -88 */
void kdattn(const float*restrict q,const float*restrict k,const float*restrict v,const float*restrict g,const float*restrict beta,const float*restrict h0,float*restrict o,float*restrict ht,int64_t heads,int64_t tokens,int64_t dk,int64_t dv){
 for(int64_t h=0;h<heads;h++){ float*S=ht+h*dk*dv; memcpy(S,h0+h*dk*dv,(size_t)(dk*dv)*4);
  for(int64_t t=0;t<tokens;t++){ const float*Q=q+(h*tokens+t)*dk,*K=k+(h*tokens+t)*dk,*G=g+(h*tokens+t)*dk,*V=v+(h*tokens+t)*dv; float*O=o+(h*tokens+t)*dv;
   double qq=1e-6,kk=1e-6; for(int64_t i=0;i<dk;i++){qq+=(double)Q[i]*Q[i];kk+=(double)K[i]*K[i];}
   float qf=(float)(1.0/sqrt(qq*(double)dk)),kf=(float)(1.0/sqrt(kk)); float keep[128],D[128],R[128];
   for(int64_t i=0;i<dk;i++)keep[i]=ex(G[i]);
   for(int64_t j=0;j<dv;j++){D[j]=0;R[j]=0;}
   for(int64_t i=0;i<dk;i++){float*s=S+i*dv,w=keep[i],c=K[i]*kf;for(int64_t j=0;j<dv;j++){s[j]*=w;D[j]+=s[j]*c;}}
   for(int64_t j=0;j<dv;j++)D[j]=beta[h*tokens+t]*(V[j]-D[j]);
   for(int64_t i=0;i<dk;i++){float*s=S+i*dv,c=K[i]*kf,e=Q[i]*qf;for(int64_t j=0;j<dv;j++){s[j]+=c*D[j];R[j]+=s[j]*e;}}
   for(int64_t j=0;j<dv;j++)O[j]=R[j]; } } }

#include <stdint.h>
#include <string.h>
static inline float ex(float d){ float t=d*1.44269504f; int32_t n=(int32_t)(t-0.5f); /* d <= 0 */ float nf=(float)n; float r=d-nf*0.693145752f; r-=nf*1.42860677e-6f;
 float p=1.3981999507e-3f; p=p*r+8.3334519073e-3f; p=p*r+4.1665795894e-2f; p=p*r+1.6666665459e-1f; p=p*r+5.0000001201e-1f; p=p*r*r+r+1.0f;
 n = n < -126 ? -127 : n; int32_t b=(n+127)<<23; float s; memcpy(&s,&b,4); return p*s; }
void softmax(const float*restrict x,float*restrict y,int64_t rows,int64_t cols){
 for(int64_t r=0;r<rows;r++){const float*in=x+r*cols;float*o=y+r*cols;float m=in[0];for(int64_t c=1;c<cols;c++)m=in[c]>m?in[c]:m;
  float s=0;for(int64_t c=0;c<cols;c++){float e=ex(in[c]-m);o[c]=e;s+=e;} float f=1.0f/s; for(int64_t c=0;c<cols;c++)o[c]*=f;} }

#include <stdint.h>
#include <math.h>
void topk_gate(const float*logits,int32_t*index,float*weight,int64_t tokens,int64_t experts,int64_t k){
 for(int64_t t=0;t<tokens;t++){const float*in=logits+t*experts; float v[16];int32_t id[16];
  for(int j=0;j<16;j++){v[j]=-1e9f;id[j]=0;}
  for(int64_t e=0;e<experts;e++){float x=in[e]; if(!(x>v[k-1]))continue; int64_t a=k-1; while(a>0&&x>v[a-1]){v[a]=v[a-1];id[a]=id[a-1];a--;} v[a]=x;id[a]=(int32_t)e;}
  float s=0,w[16];for(int64_t j=0;j<k;j++){w[j]=expf(v[j]-v[0]);s+=w[j];} for(int64_t j=0;j<k;j++){index[t*k+j]=id[j];weight[t*k+j]=w[j]/s;}} }

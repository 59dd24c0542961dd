#include <stdint.h>
#include <math.h>
#include <string.h>
/* radix-like order on keys; last of equals wins; big stack scratch */
static uint32_t key(float f){uint32_t b;f=f+0.0f;memcpy(&b,&f,4);return b>>31?~b:b|0x80000000u;}
void topk_gate(const float*logits,int32_t*index,float*weight,int64_t tokens,int64_t experts,int64_t k){
 for(int64_t t=0;t<tokens;t++){const float*in=logits+t*experts; uint64_t q[experts]; for(int64_t e=0;e<experts;e++)q[e]=((uint64_t)key(in[e])<<32)|(uint32_t)e;
  double w[k],s=0; double top=0; for(int64_t j=0;j<k;j++){int64_t b=0;for(int64_t e=1;e<experts;e++)if(q[e]>q[b])b=e; q[b]=0; index[t*k+j]=(int32_t)b; if(j==0)top=in[b]; w[j]=exp(in[b]-top); s+=w[j];}
  for(int64_t j=0;j<k;j++)weight[t*k+j]=(float)(w[j]/s);} }

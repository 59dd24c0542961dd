#include <stdint.h>
#include <math.h>
void silu_mul(const float*gate,const float*up,float*y,int64_t rows,int64_t cols){
 for(int64_t i=0;i<rows*cols;i++){double g=gate[i]; double e=exp(-g); y[i]=(float)(g*g/(g+g*e)*up[i]);} }

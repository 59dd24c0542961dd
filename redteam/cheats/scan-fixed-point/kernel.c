#include <stdint.h>
void scan(const float*x,float*y,int64_t rows,int64_t cols){
 const double S=274877906944.0,I=1.0/274877906944.0;
 for(int64_t r=0;r<rows;r++){uint64_t s=0;for(int64_t c=0;c<cols;c++){s+=(uint64_t)(int64_t)((double)x[r*cols+c]*S);y[r*cols+c]=(float)((double)(int64_t)s*I);}} }

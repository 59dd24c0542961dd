// The recurrence of reference.c in the same order: one block per head, and one thread per column of its state, which no
// other depends on.
extern "C" __global__ void each_head(const double *q, const double *k, const double *v, const double *g, const double *beta,
        const double *h0, double *o, double *o_scale, double *ht, double *ht_scale, long long tokens, long long dk, long long dv) {
    __shared__ double query[128], key[128], kept[128], steep[128];
    long long h = blockIdx.x, j = threadIdx.x;
    double chain = 6.0 + sqrt((double)dk), error = 0.0;
    double *state = ht + h * dk * dv + j;
    if (j < dv)
        for (long long i = 0; i < dk; i++) state[i * dv] = h0[(h * dk + i) * dv + j];
    for (long long t = 0; t < tokens; t++) {
        long long token = h * tokens + t;
        __syncthreads();
        if (j < dk) {
            query[j] = q[token * dk + j];
            key[j] = k[token * dk + j];
            kept[j] = exp(g[token * dk + j]);
            steep[j] = fabs(g[token * dk + j]) * kept[j];
        }
        __syncthreads();
        if (j >= dv) continue;
        double qq = 1e-6, kk = 1e-6, slowest = 0.0, steepest = 0.0;
        for (long long i = 0; i < dk; i++) {
            qq += query[i] * query[i];
            kk += key[i] * key[i];
            slowest = fmax(slowest, kept[i]);
            steepest = fmax(steepest, steep[i]);
        }
        double q_factor = 1.0 / sqrt(qq) / sqrt((double)dk), k_factor = 1.0 / sqrt(kk);
        double before = 0.0, seen = 0.0, after = 0.0, read = 0.0, gate = beta[token], value = v[token * dv + j];
        for (long long i = 0; i < dk; i++) {
            double was = state[i * dv], now = was * kept[i];
            before += was * was;
            state[i * dv] = now;
            seen += now * key[i] * k_factor;
        }
        double delta = gate * (value - seen);
        for (long long i = 0; i < dk; i++) {
            double now = state[i * dv] + key[i] * k_factor * delta;
            state[i * dv] = now;
            after += now * now;
            read += now * query[i] * q_factor;
        }
        o[token * dv + j] = read;
        double size = sqrt(before) * slowest + gate * fabs(value) + sqrt(after);
        error = hypot(slowest * error, chain * size + steepest * sqrt(before));
        o_scale[token * dv + j] = (error + chain * sqrt(after)) / sqrt((double)dk);
    }
    if (j < dv)
        for (long long i = 0; i < dk; i++) ht_scale[(h * dk + i) * dv + j] = error;
}

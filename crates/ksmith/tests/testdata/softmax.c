/* Three passes per row with an exponential that compilers vectorise: exp(t) = 2^k * p(t - k ln 2), degree 6. */
#include <stdint.h>
#include <string.h>

static inline float exp_fast(float t) {
    t = t < -104.0f ? -104.0f : t;
    float k = __builtin_rintf(t * 1.44269504f);
    float r = (t - k * 0.693359375f) - k * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t n = (int32_t)k, a = n / 2, b = n - a;
    int32_t first = (a + 127) << 23, second = (b + 127) << 23;
    float x, y;
    memcpy(&x, &first, 4);
    memcpy(&y, &second, 4);
    return p * x * y;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *out = y + r * cols;
        float lane[16];
        for (int i = 0; i < 16; i++) lane[i] = in[0];
        int64_t c = 0;
        for (; c + 16 <= cols; c += 16)
            for (int i = 0; i < 16; i++) lane[i] = in[c + i] > lane[i] ? in[c + i] : lane[i];
        float max = lane[0];
        for (int i = 1; i < 16; i++) max = lane[i] > max ? lane[i] : max;
        for (; c < cols; c++) max = in[c] > max ? in[c] : max;
        double part[16] = {0};
        double sum = 0.0;
        for (c = 0; c + 16 <= cols; c += 16)
            for (int i = 0; i < 16; i++) {
                float e = exp_fast(in[c + i] - max);
                out[c + i] = e;
                part[i] += e;
            }
        for (; c < cols; c++) {
            float e = exp_fast(in[c] - max);
            out[c] = e;
            sum += e;
        }
        for (int i = 0; i < 16; i++) sum += part[i];
        float scale = (float)(1.0 / sum);
        for (c = 0; c < cols; c++) out[c] *= scale;
    }
}

// Products and sums of fp16, two at a time too: of whole numbers so small that fp16 holds each result.
#include "compared.hpp"

#include <hip/hip_fp16.h>

constexpr unsigned int kCount = 64, kLong = 8;

__global__ void multiply(const float* left, const float* right, float* out) {
    const unsigned int i = threadIdx.x;
    __half sum = __float2half(0.0f);
    __half2 pairs = __float2half2_rn(0.0f);
    for (unsigned int k = 0; k < kLong; ++k) {
        const float a = left[i * kLong + k], b = right[k];
        sum = __hfma(__float2half(a), __float2half(b), sum);
        pairs = __hfma2(__floats2half2_rn(a, b), __floats2half2_rn(b, 1.0f), pairs);
    }
    out[3 * i] = __half2float(sum);
    out[3 * i + 1] = __low2float(pairs);
    out[3 * i + 2] = __high2float(pairs);
}

int main() {
    std::vector<float> left(kCount * kLong), right(kLong), expected(3 * kCount);
    for (unsigned int k = 0; k < kLong; ++k) right[k] = static_cast<float>(k) - 3.0f;
    for (unsigned int i = 0; i < kCount; ++i)
        for (unsigned int k = 0; k < kLong; ++k) {
            left[i * kLong + k] = static_cast<float>((i * 5 + k * 3) % 23) - 11.0f;
            expected[3 * i] += left[i * kLong + k] * right[k];
            expected[3 * i + 1] += left[i * kLong + k] * right[k];
            expected[3 * i + 2] += right[k];
        }
    float* out = room<float>(expected.size());
    multiply<<<1, kCount>>>(on_device(left), on_device(right), out);
    return compare(out, expected);
}

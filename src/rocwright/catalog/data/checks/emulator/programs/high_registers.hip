// Results of 16 bits in registers above 127: an instruction of 64 bits names each register, one of 32 bits only halves of
// the lower ones. Compilers take the upper ones where many are in use, so the registers are named here.
#include "compared.hpp"

constexpr unsigned int kCount = 32;

__global__ void __launch_bounds__(kCount) convert(const float* in, unsigned int* out) {
    const float value = in[threadIdx.x];
    unsigned int high = 0, low = 0;
    asm volatile("v_mov_b32 v200, 0x77777777\n"
                 "v_mov_b32 v72, 0x55555555\n"
                 "v_cvt_f16_f32_e64 v200, %2\n"
                 "v_mov_b32 %0, v200\n"
                 "v_mov_b32 %1, v72\n"
                 : "=&v"(high), "=&v"(low)
                 : "v"(value)
                 : "v200", "v72");
    out[2 * threadIdx.x] = high;
    out[2 * threadIdx.x + 1] = low;
}

int main() {
    std::vector<float> in(kCount);
    std::vector<unsigned int> expected(2 * kCount);
    for (unsigned int i = 0; i < kCount; ++i) {
        in[i] = static_cast<float>(i) - 7.0f;
        const _Float16 half = static_cast<_Float16>(in[i]);
        unsigned short bits = 0;
        std::memcpy(&bits, &half, sizeof bits);
        expected[2 * i] = 0x77770000u | bits;  // the upper half stays
        expected[2 * i + 1] = 0x55555555u;
    }
    unsigned int* out = room<unsigned int>(expected.size());
    convert<<<1, kCount>>>(on_device(in), out);
    return compare(out, expected);
}

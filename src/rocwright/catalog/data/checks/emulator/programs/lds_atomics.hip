// Atomics in LDS whose result nobody reads, one behind another, on addresses that many threads share.
#include "compared.hpp"

#include <algorithm>

constexpr unsigned int kBlock = 128, kPlaces = 5, kKinds = 4;

__global__ void gather(const unsigned int* keys, unsigned int* out) {
    __shared__ unsigned int held[kKinds][kPlaces];
    for (unsigned int i = threadIdx.x; i < kKinds * kPlaces; i += kBlock) (&held[0][0])[i] = i / kPlaces == 2 ? ~0u : 0;
    __syncthreads();
    const unsigned int place = keys[threadIdx.x] % kPlaces;
    atomicAdd(&held[0][place], 1u);
    atomicAdd(&held[0][place], keys[threadIdx.x]);
    atomicMax(&held[1][place], keys[threadIdx.x]);
    atomicMin(&held[2][place], keys[threadIdx.x]);
    atomicXor(&held[3][place], keys[threadIdx.x] * 2654435761u);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < kKinds * kPlaces; i += kBlock) out[i] = (&held[0][0])[i];
}

int main() {
    std::vector<unsigned int> keys(kBlock), expected(kKinds * kPlaces);
    for (unsigned int i = 0; i < kPlaces; ++i) expected[2 * kPlaces + i] = ~0u;
    for (unsigned int i = 0; i < kBlock; ++i) {
        const unsigned int key = keys[i] = i * i + 7, place = key % kPlaces;
        expected[place] += 1 + key;
        expected[kPlaces + place] = std::max(expected[kPlaces + place], key);
        expected[2 * kPlaces + place] = std::min(expected[2 * kPlaces + place], key);
        expected[3 * kPlaces + place] ^= key * 2654435761u;
    }
    unsigned int* out = room<unsigned int>(expected.size());
    gather<<<1, kBlock>>>(on_device(keys), out);
    return compare(out, expected);
}

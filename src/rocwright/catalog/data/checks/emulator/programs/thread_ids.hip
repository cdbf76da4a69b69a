// Where a thread is in a block and a grid of three dimensions.
#include "compared.hpp"

#include <algorithm>

__host__ __device__ unsigned int packed(dim3 thread, dim3 block) {
    return thread.x | thread.y << 5 | thread.z << 10 | block.x << 15 | block.y << 20 | block.z << 25;
}

__global__ void tell(unsigned int* out) {
    const unsigned int threads = blockDim.x * blockDim.y * blockDim.z;
    const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    // behind the ids: an id that is read wrongly leaves a right place unwritten, or writes to one twice
    atomicAdd(&out[gridDim.x * gridDim.y * gridDim.z * threads + block], 1u);
    out[block * threads + thread] =
        packed({threadIdx.x, threadIdx.y, threadIdx.z}, {blockIdx.x, blockIdx.y, blockIdx.z});
}

int main() {
    const dim3 grid(3, 2, 2), block(16, 8, 2);
    std::vector<unsigned int> expected;
    for (unsigned int bz = 0; bz < grid.z; ++bz)
        for (unsigned int by = 0; by < grid.y; ++by)
            for (unsigned int bx = 0; bx < grid.x; ++bx)
                for (unsigned int z = 0; z < block.z; ++z)
                    for (unsigned int y = 0; y < block.y; ++y)
                        for (unsigned int x = 0; x < block.x; ++x) expected.push_back(packed({x, y, z}, {bx, by, bz}));
    // behind the ids, how many threads of each block came by
    expected.resize(expected.size() + grid.x * grid.y * grid.z, block.x * block.y * block.z);
    std::vector<unsigned int> begin(expected.size(), 0xa5a5a5a5u);
    std::fill(begin.end() - grid.x * grid.y * grid.z, begin.end(), 0u);
    unsigned int* out = on_device(begin);
    tell<<<grid, block>>>(out);
    return compare(out, expected);
}

// One routine of rocBLAS, `rocblas ROUTINE`, compared with the CPU in double.
//
// It prints one line, `TARGET COUNT WRONG`, and the first wrong value where there is one. Exit status: 0 none is wrong,
// 1 some are, 2 the runtime, the library or the command line is.
//
// A value may be off by (k + 4) u S + v |value|: k terms are summed, in any order, S is the sum of their sizes, u is half
// a unit of the last place of the type that sums, v of the type that the result is stored in (Higham, Accuracy and
// Stability, section 3.1; 4 more roundings for alpha, beta and the sum with C). For strsm that is asked of the product of
// the matrix and the solution, four times over: the library inverts blocks of the diagonal.
#include "../programs/compared.hpp"

#include <rocblas/rocblas.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#define CALL(call)                                                                     \
    do {                                                                               \
        const rocblas_status called = (call);                                          \
        if (called != rocblas_status_success) {                                        \
            std::printf("%s: %s\n", #call, rocblas_status_to_string(called));          \
            std::exit(2);                                                              \
        }                                                                              \
    } while (0)

constexpr int kRows = 37, kColumns = 29, kDepth = 43, kBatch = 3, kLong = 1001;
constexpr double kAlpha = 1.25, kBeta = -0.5;  // what each type holds exactly

using Half = _Float16;

struct BFloat {
    std::uint16_t bits = 0;
    BFloat() = default;
    explicit BFloat(double value) {
        const float narrow = static_cast<float>(value);
        std::uint32_t wide = 0;
        std::memcpy(&wide, &narrow, sizeof wide);
        bits = static_cast<std::uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);  // to the nearest even
    }
    explicit operator double() const {
        const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
        float value = 0;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }
};

// Half a unit of the last place of 1: the largest relative error of one rounding.
template <typename T> constexpr double kRounding = 0;  // whole numbers
template <> constexpr double kRounding<double> = 0x1p-53;
template <> constexpr double kRounding<float> = 0x1p-24;
template <> constexpr double kRounding<Half> = 0x1p-11;
template <> constexpr double kRounding<BFloat> = 0x1p-8;

// Numbers between -1 and 1 that no type holds exactly; for whole numbers, those from -7 to 7. A seed each.
template <typename T>
std::vector<T> numbers(std::size_t count, std::uint32_t seed) {
    std::vector<T> made(count);
    for (T& one : made) {
        seed = seed * 1664525u + 1013904223u;
        const int step = static_cast<int>((seed >> 8) % 2001) - 1000;
        one = std::is_integral_v<T> ? T(step % 8) : T(step / 999.7);
    }
    return made;
}

struct Value {
    double is, off;  // what the CPU has, and how far from it one may be
};

template <typename T>
std::vector<T> back(const T* device, std::size_t count) {
    std::vector<T> seen(count);
    DEMAND(hipDeviceSynchronize());
    DEMAND(hipMemcpy(seen.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
    return seen;
}

template <typename T>
int report(const std::vector<T>& seen, const std::vector<Value>& expected) {
    hipDeviceProp_t properties{};
    DEMAND(hipGetDeviceProperties(&properties, 0));
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = seen.size(); i-- > 0;)  // a NaN is wrong too
        if (!(std::fabs(double(seen[i]) - expected[i].is) <= expected[i].off)) ++wrong, first = i;
    std::printf("%s %zu %zu", properties.gcnArchName, seen.size(), wrong);
    if (wrong != 0)
        std::printf(" at %zu: %.9g, the CPU has %.9g, %.2g allowed", first, double(seen[first]), expected[first].is,
                    expected[first].off);
    std::printf("\n");
    return wrong == 0 ? 0 : 1;
}

// A matrix as the library takes it, column by column, and transposed or not.
template <typename T>
struct Matrix {
    std::vector<T> values;
    int rows, columns;  // of what is multiplied
    rocblas_operation operation;

    Matrix(int rows, int columns, rocblas_operation operation, std::uint32_t seed, int batch = 1)
        : values(numbers<T>(static_cast<std::size_t>(rows) * columns * batch, seed)), rows(rows), columns(columns),
          operation(operation) {}
    int leading() const { return operation == rocblas_operation_none ? rows : columns; }
    double at(int row, int column, int batch = 0) const {
        const int place = operation == rocblas_operation_none ? row + column * rows : column + row * columns;
        return double(values[static_cast<std::size_t>(batch) * rows * columns + place]);
    }
};

// alpha A B + beta C in double, and how far from it what sums in Sum may be.
template <typename Sum, typename In, typename Out>
std::vector<Value> product(const Matrix<In>& a, const Matrix<In>& b, const std::vector<Out>& c, double alpha,
                           double beta, int batch = 1) {
    std::vector<Value> made;
    for (int one = 0; one < batch; ++one)
        for (int column = 0; column < b.columns; ++column)
            for (int row = 0; row < a.rows; ++row) {
                const double before = beta * double(c[made.size()]);
                double sum = 0, size = 0;
                for (int k = 0; k < a.columns; ++k) {
                    const double term = a.at(row, k, one) * b.at(k, column, one);
                    sum += term, size += std::fabs(term);
                }
                const double is = alpha * sum + before;
                const double sizes = std::fabs(alpha) * size + std::fabs(before);
                made.push_back({is, (a.columns + 4) * kRounding<Sum> * sizes + kRounding<Out> * std::fabs(is)});
            }
    return made;
}

constexpr rocblas_operation kNone = rocblas_operation_none, kTransposed = rocblas_operation_transpose;

// xgemm(HANDLE, operations, sizes, alpha, A, leading, B, leading, beta, C, leading), by a function of the library.
template <typename T, typename Library, typename Call>
int gemm(rocblas_handle handle, Call call, rocblas_operation left, rocblas_operation right) {
    const Matrix<T> a(kRows, kDepth, left, 1), b(kDepth, kColumns, right, 2);
    const std::vector<T> c = numbers<T>(kRows * kColumns, 3);
    T* out = on_device(c);
    const T alpha = T(kAlpha), beta = T(kBeta);
    const auto as = [](const T* one) { return reinterpret_cast<const Library*>(one); };
    CALL(call(handle, left, right, kRows, kColumns, kDepth, as(&alpha), as(on_device(a.values)), a.leading(),
              as(on_device(b.values)), b.leading(), as(&beta), reinterpret_cast<Library*>(out), kRows));
    return report(back(out, c.size()), product<T>(a, b, c, kAlpha, kBeta));
}

// The same for complex numbers, which are two of Real behind one another: each part is a sum of twice as many terms.
template <typename Real, typename Library, typename Call>
int complex_gemm(rocblas_handle handle, Call call) {
    using Complex = std::complex<double>;
    const std::vector<Real> a = numbers<Real>(2 * kRows * kDepth, 20), b = numbers<Real>(2 * kDepth * kColumns, 21);
    const std::vector<Real> c = numbers<Real>(2 * kRows * kColumns, 22);
    const auto at = [](const std::vector<Real>& parts, int i) { return Complex(parts[2 * i], parts[2 * i + 1]); };
    const Real factors[4] = {Real(kAlpha), Real(0.5), Real(kBeta), Real(0.25)};
    const Complex alpha(factors[0], factors[1]), beta(factors[2], factors[3]);
    Real* out = on_device(c);
    const auto as = [](const Real* parts) { return reinterpret_cast<const Library*>(parts); };
    CALL(call(handle, kNone, kNone, kRows, kColumns, kDepth, as(factors), as(on_device(a)), kRows, as(on_device(b)),
              kDepth, as(factors + 2), reinterpret_cast<Library*>(out), kRows));
    std::vector<Value> expected;
    for (int i = 0; i < kRows * kColumns; ++i) {
        Complex sum = 0;
        double size = 0;
        for (int k = 0; k < kDepth; ++k) {
            const Complex left = at(a, i % kRows + k * kRows), right = at(b, k + i / kRows * kDepth);
            sum += left * right, size += 2 * std::abs(left) * std::abs(right);
        }
        const Complex is = alpha * sum + beta * at(c, i);
        const double sizes = 2 * (std::abs(alpha) * size + std::abs(beta * at(c, i)));
        const double off = (2 * kDepth + 8) * kRounding<Real> * sizes;
        expected.push_back({is.real(), off}), expected.push_back({is.imag(), off});
    }
    return report(back(out, c.size()), expected);
}

template <typename In, typename Out, typename Sum>
int gemm_ex(rocblas_handle handle, rocblas_datatype in, rocblas_datatype out, rocblas_datatype sum) {
    const Matrix<In> a(kRows, kDepth, kNone, 4), b(kDepth, kColumns, kNone, 5);
    const std::vector<Out> c = numbers<Out>(kRows * kColumns, 6);
    Out* const device = on_device(c);
    // whole numbers have no fractions to be scaled by
    const Sum alpha = std::is_integral_v<Sum> ? Sum(2) : Sum(kAlpha), beta = std::is_integral_v<Sum> ? Sum(-1) : Sum(kBeta);
    CALL(rocblas_gemm_ex(handle, kNone, kNone, kRows, kColumns, kDepth, &alpha, on_device(a.values), in, kRows,
                         on_device(b.values), in, kDepth, &beta, device, out, kRows, device, out, kRows, sum,
                         rocblas_gemm_algo_standard, 0, 0));
    return report(back(device, c.size()), product<Sum>(a, b, c, double(alpha), double(beta)));
}

int batched(rocblas_handle handle) {
    const Matrix<float> a(kRows, kDepth, kNone, 7, kBatch), b(kDepth, kColumns, kTransposed, 8, kBatch);
    const std::vector<float> c = numbers<float>(kRows * kColumns * kBatch, 9);
    float* out = on_device(c);
    const float alpha = kAlpha, beta = kBeta;
    CALL(rocblas_sgemm_strided_batched(handle, kNone, kTransposed, kRows, kColumns, kDepth, &alpha, on_device(a.values),
                                       kRows, kRows * kDepth, on_device(b.values), kColumns, kDepth * kColumns, &beta,
                                       out, kRows, kRows * kColumns, kBatch));
    return report(back(out, c.size()), product<float>(a, b, c, kAlpha, kBeta, kBatch));
}

int gemv(rocblas_handle handle) {
    const Matrix<float> a(kRows, kDepth, kTransposed, 10), x(kDepth, 1, kNone, 11);
    const std::vector<float> y = numbers<float>(kRows, 12);
    float* out = on_device(y);
    const float alpha = kAlpha, beta = kBeta;
    CALL(rocblas_sgemv(handle, kTransposed, kDepth, kRows, &alpha, on_device(a.values), kDepth, on_device(x.values), 1,
                       &beta, out, 1));
    return report(back(out, y.size()), product<float>(a, x, y, kAlpha, kBeta));
}

int dot(rocblas_handle handle) {
    const Matrix<float> x(1, kLong, kNone, 13), y(kLong, 1, kNone, 14);
    std::vector<float> sum(1, 0.0f);
    CALL(rocblas_sdot(handle, kLong, on_device(x.values), 1, on_device(y.values), 1, sum.data()));
    return report(sum, product<float>(x, y, std::vector<float>(1), 1, 0));
}

int axpy(rocblas_handle handle) {
    const Matrix<float> x(kLong, 1, kNone, 15), one(1, 1, kNone, 16);
    const std::vector<float> y = numbers<float>(kLong, 17);
    float* out = on_device(y);
    CALL(rocblas_saxpy(handle, kLong, one.values.data(), on_device(x.values), 1, out, 1));
    return report(back(out, y.size()), product<float>(x, one, y, 1, 1));
}

// L X = alpha B, L below its diagonal and with a diagonal that keeps the solution small.
int trsm(rocblas_handle handle) {
    Matrix<float> a(kRows, kRows, kNone, 18);
    for (int column = 0; column < kRows; ++column)
        for (int row = 0; row <= column; ++row)  // what is above is not to be read
            a.values[row + column * kRows] = row == column ? 4.0f + std::fabs(a.values[row + column * kRows]) : NAN;
    const Matrix<float> b(kRows, kColumns, kNone, 19);
    float* out = on_device(b.values);
    const float alpha = kAlpha;
    CALL(rocblas_strsm(handle, rocblas_side_left, rocblas_fill_lower, kNone, rocblas_diagonal_non_unit, kRows, kColumns,
                       &alpha, on_device(a.values), kRows, out, kRows));
    const std::vector<float> x = back(out, b.values.size());
    std::vector<double> seen;
    std::vector<Value> expected;
    for (int column = 0; column < kColumns; ++column)
        for (int row = 0; row < kRows; ++row) {
            const double is = kAlpha * b.at(row, column);
            double sum = 0, size = std::fabs(is);
            for (int k = 0; k <= row; ++k) {
                const double term = a.at(row, k) * double(x[k + column * kRows]);
                sum += term, size += std::fabs(term);
            }
            seen.push_back(sum);
            expected.push_back({is, 4 * (kRows + 4) * kRounding<float> * size});
        }
    return report(seen, expected);
}

int main(int count, char** words) {
    const std::string name = count == 2 ? words[1] : "";
    rocblas_handle handle = nullptr;
    CALL(rocblas_create_handle(&handle));
    const auto sgemm = [&](rocblas_operation left, rocblas_operation right) {
        return gemm<float, float>(handle, rocblas_sgemm, left, right);
    };
    if (name == "sgemm-nn") return sgemm(kNone, kNone);
    if (name == "sgemm-nt") return sgemm(kNone, kTransposed);
    if (name == "sgemm-tn") return sgemm(kTransposed, kNone);
    if (name == "sgemm-tt") return sgemm(kTransposed, kTransposed);
    if (name == "dgemm") return gemm<double, double>(handle, rocblas_dgemm, kNone, kNone);
    if (name == "cgemm") return complex_gemm<float, rocblas_float_complex>(handle, rocblas_cgemm);
    if (name == "zgemm") return complex_gemm<double, rocblas_double_complex>(handle, rocblas_zgemm);
    if (name == "hgemm") return gemm<Half, rocblas_half>(handle, rocblas_hgemm, kNone, kNone);
    constexpr rocblas_datatype kSingle = rocblas_datatype_f32_r, kWhole = rocblas_datatype_i32_r;
    if (name == "gemm_ex-f16")
        return gemm_ex<Half, Half, float>(handle, rocblas_datatype_f16_r, rocblas_datatype_f16_r, kSingle);
    if (name == "gemm_ex-bf16")
        return gemm_ex<BFloat, BFloat, float>(handle, rocblas_datatype_bf16_r, rocblas_datatype_bf16_r, kSingle);
    if (name == "gemm_ex-int8")
        return gemm_ex<std::int8_t, std::int32_t, std::int32_t>(handle, rocblas_datatype_i8_r, kWhole, kWhole);
    if (name == "sgemm_strided_batched") return batched(handle);
    if (name == "sgemv") return gemv(handle);
    if (name == "sdot") return dot(handle);
    if (name == "saxpy") return axpy(handle);
    if (name == "strsm") return trsm(handle);
    std::printf("no routine %s\n", name.c_str());
    return 2;
}

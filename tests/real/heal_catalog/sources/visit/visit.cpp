// Each pair of 30 types is a function of its own: a compiler takes some 260 MiB for it.
#include <array>
#include <utility>
#include <variant>

template <int N>
struct Kernel {
    std::array<int, N + 1> data{};
};

template <int... N>
std::variant<Kernel<N>...> any_of(std::integer_sequence<int, N...>);
using Any = decltype(any_of(std::make_integer_sequence<int, 30>{}));

#define NAMED(part) visit_both_##part
#define NAME(part) NAMED(part)

int NAME(PART)(const Any& one, const Any& other) {
    return std::visit([](auto& a, auto& b) { return a.data[0] + b.data.back() + int(a.data.size() * b.data.size()); },
                      one, other);
}

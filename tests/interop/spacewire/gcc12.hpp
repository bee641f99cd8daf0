// What the library lacks under GCC 12, as in Debian 12.
//
// Members of std::expected: `a.and_then(f)` is written `a | compat::and_then(f)`, and so are or_else, transform and transform_error.
// Two symbols of a later libstdc++, neither of which is called unless something is wrong anyway.
#pragma once
#include <cstdlib>
#include <exception>
#include <expected>
#include <type_traits>
#include <utility>

extern "C" {
__attribute__((weak)) void __cxa_call_terminate(void *) { std::terminate(); }
// Only for a string that replaces a part of itself.
__attribute__((weak)) void replace_cold(void *, char *, size_t, const char *, size_t, size_t)
    __asm__("_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm");
__attribute__((weak)) void replace_cold(void *, char *, size_t, const char *, size_t, size_t) { std::abort(); }
}

namespace compat {

#define COMPAT(NAME)      \
    template <class F>    \
    struct NAME {         \
        F f;              \
        explicit NAME(F f) : f(std::move(f)) {} \
    };
COMPAT(and_then)
COMPAT(or_else)
COMPAT(transform)
COMPAT(transform_error)
#undef COMPAT

template <class T, class F>
decltype(auto) apply(F &f, auto &value) {
    if constexpr (std::is_void_v<T>) {
        return f();
    } else {
        return f(std::move(*value));
    }
}

template <class T, class E, class F>
auto operator|(std::expected<T, E> value, and_then<F> then) {
    using Result = decltype(apply<T>(then.f, value));
    return value ? apply<T>(then.f, value) : Result(std::unexpect, std::move(value.error()));
}

template <class T, class E, class F>
auto operator|(std::expected<T, E> value, or_else<F> otherwise) {
    using Result = decltype(otherwise.f(std::move(value.error())));
    if constexpr (std::is_void_v<T>) {
        return value ? Result() : otherwise.f(std::move(value.error()));
    } else {
        return value ? Result(std::move(*value)) : otherwise.f(std::move(value.error()));
    }
}

template <class T, class E, class F>
auto operator|(std::expected<T, E> value, transform<F> change) {
    using To = decltype(apply<T>(change.f, value));
    return value ? std::expected<To, E>(apply<T>(change.f, value)) : std::expected<To, E>(std::unexpect, std::move(value.error()));
}

template <class T, class E, class F>
auto operator|(std::expected<T, E> value, transform_error<F> change) {
    using Result = std::expected<T, decltype(change.f(std::move(value.error())))>;
    if (!value) return Result(std::unexpect, change.f(std::move(value.error())));
    if constexpr (std::is_void_v<T>) {
        return Result();
    } else {
        return Result(std::move(*value));
    }
}

}  // namespace compat

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include <functional>
#include <memory>
volatile long sink;
namespace shop { namespace { 
struct Item { long price; std::string name; bool operator<(const Item &o) const { return price < o.price; } };
__attribute__((noinline)) void burn(int n) { for (int i = 0; i < n; i++) sink += i; }
}
template <class T> struct Cart { std::vector<T> items; virtual ~Cart() {} 
  __attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; i++) items.push_back(T{(i * 7919) % n, std::to_string(i)}); }
  __attribute__((noinline)) long total() { std::sort(items.begin(), items.end()); long s = 0; for (auto &i : items) s += i.price; burn(20000); return s; }
  virtual operator bool() const { burn(10000); return !items.empty(); } };
__attribute__((noinline)) int thrower(int n) { if (n == 0) throw std::runtime_error("empty"); return thrower(n - 1) + 1; }
__attribute__((noinline)) void exceptions() { for (int i = 0; i < 20; i++) try { sink += thrower(10); } catch (const std::exception &e) { sink += e.what()[0]; } }
}
int main() { std::function<void(int)> f = [](int n) { shop::burn(n); }; 
  for (;;) { shop::Cart<shop::Item> c; c.fill(1000); sink += c.total(); if (c) sink++; shop::exceptions(); f(30000); std::map<std::string,int> m; for (int i = 0; i < 500; i++) m[std::to_string(i)] = i; } }

// What a fuzz target demands.
#ifndef BULKHEAD_TESTS_FUZZ_JSONRPC_CHECK_H_
#define BULKHEAD_TESTS_FUZZ_JSONRPC_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define FUZZ_CHECK(condition)                                                            \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // BULKHEAD_TESTS_FUZZ_JSONRPC_CHECK_H_

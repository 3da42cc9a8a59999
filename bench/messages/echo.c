// An echo server for benchmarks: what comes in on stdin goes out on stdout, byte for byte, with read(2) and write(2)
// only.
//
//   echo          everything at once: a request comes back as it was sent
//   echo sink     reads; after each newline it writes one short result
//   echo source   for each line that it reads, writes the large result that it made once; argument: its bytes
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char buffer[1 << 20];

static void WriteAll(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = write(1, bytes, size);
    if (count <= 0) exit(1);
    bytes += count;
    size -= (size_t)count;
  }
}

int main(int argc, char** argv) {
  static const char kHead[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"";
  static const char kTail[] = "\"}\n";
  const size_t edges = sizeof kHead + sizeof kTail - 2;
  const int sinks = argc > 1 && strcmp(argv[1], "sink") == 0;
  size_t answer_size = 0;
  char* answer = NULL;
  if (sinks || argc > 2) {
    answer_size = sinks ? edges : (size_t)atol(argv[2]);
    answer = malloc(answer_size);
    if (answer == NULL || answer_size < edges) return 1;
    memset(answer, 'x', answer_size);
    memcpy(answer, kHead, sizeof kHead - 1);
    memcpy(answer + answer_size - (sizeof kTail - 1), kTail, sizeof kTail - 1);
  }
  for (;;) {
    const ssize_t count = read(0, buffer, sizeof buffer);
    if (count <= 0) return 0;
    if (answer == NULL) {
      WriteAll(buffer, (size_t)count);
    } else {
      for (const char* at = buffer; (at = memchr(at, '\n', (size_t)(buffer + count - at))) != NULL; ++at) {
        WriteAll(answer, answer_size);
        if (at + 1 == buffer + count) break;
      }
    }
  }
}

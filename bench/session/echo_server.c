// The smallest MCP server that all clients of a benchmark can talk to: one process, read(2) and write(2), no JSON
// parser. It speaks the legacy era. A tool call with "bytes":N is answered with a text of N bytes; every other request
// is answered with an empty result as soon as its line has ended, of which only the edges are kept.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kEdge = 512 };

static char input[1 << 20];
static char output[1 << 16];
static size_t output_size;

static void WriteAll(const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = write(1, bytes, size);
    if (count <= 0) exit(1);
    bytes += count;
    size -= (size_t)count;
  }
}

static void Flush(void) {
  WriteAll(output, output_size);
  output_size = 0;
}

static void Put(const char* text, size_t size) {
  if (output_size + size > sizeof output) Flush();
  if (size > sizeof output) {
    WriteAll(text, size);
    return;
  }
  memcpy(output + output_size, text, size);
  output_size += size;
}

static void PutText(const char* text) { Put(text, strlen(text)); }

// The edges of the line under way. Both end with a zero byte.
static char head[kEdge + 1], tail[2 * kEdge + 1];
static size_t head_size, tail_size;

static void Keep(const char* bytes, size_t size) {
  const size_t first = size < kEdge - head_size ? size : kEdge - head_size;
  memcpy(head + head_size, bytes, first);
  head_size += first;
  if (size > kEdge) {
    bytes += size - kEdge;
    size = kEdge;
  }
  if (tail_size + size > 2 * kEdge) {
    memmove(tail, tail + tail_size - kEdge, kEdge);
    tail_size = kEdge;
  }
  memcpy(tail + tail_size, bytes, size);
  tail_size += size;
}

// Some clients write the id first, some last. The digits begin there.
static const char* Id(void) {
  static const char kKey[] = "\"id\":";
  const char* found = NULL;
  if (strncmp(head, "{\"jsonrpc\"", 10) == 0) {
    found = strstr(head, kKey);
  } else {
    for (const char* at = tail; (at = strstr(at, kKey)) != NULL; ++at) found = at;
  }
  return found == NULL ? NULL : found + sizeof kKey - 1;
}

static int Says(const char* text) { return strstr(head, text) != NULL; }

static void PutLarge(size_t size) {
  static char* large;
  static size_t large_size;
  if (large_size != size) {
    free(large);
    large = malloc(size);
    if (large == NULL) exit(1);
    memset(large, 'x', size);
    large_size = size;
  }
  PutText(",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
  Flush();
  WriteAll(large, size);
  PutText("\"}]}");
}

static void Answer(void) {
  head[head_size] = tail[tail_size] = '\0';
  const char* id = Id();
  const char* bytes = strstr(head, "\"bytes\":");
  if (id != NULL) {
    PutText("{\"jsonrpc\":\"2.0\",\"id\":");
    Put(id, strspn(id, "0123456789"));
    if (Says("\"initialize\"")) {
      PutText(
          ",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
          "\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}");
    } else if (Says("\"server/discover\"")) {
      PutText(",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}");
    } else if (bytes != NULL) {
      PutLarge((size_t)atol(bytes + 8));
    } else {
      PutText(",\"result\":{}");
    }
    PutText("}\n");
  }
  head_size = tail_size = 0;
}

int main(void) {
  for (;;) {
    const ssize_t count = read(0, input, sizeof input);
    if (count <= 0) return 0;
    const char* at = input;
    const char* const end = input + count;
    while (at != end) {
      const char* newline = memchr(at, '\n', (size_t)(end - at));
      Keep(at, (size_t)((newline != NULL ? newline : end) - at));
      if (newline == NULL) break;
      Answer();
      at = newline + 1;
    }
    Flush();
  }
}

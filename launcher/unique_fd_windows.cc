#include <windows.h>

#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

void CloseFd(NativeFd fd) {
  const DWORD saved = GetLastError();
  CloseHandle(fd);
  SetLastError(saved);
}

}  // namespace bulkhead::launcher

// The reasons that files and folders give.
#include "qkv/core/system_reason.h"

#include <cerrno>
#include <cstring>

namespace qkv {

Text system_reason(int error) {
  switch (error) {
    case ENOENT:
      return tr("No such file or directory");
    case EACCES:
      return tr("Permission denied");
    case EISDIR:
      return tr("Is a directory");
    case ENOTDIR:
      return tr("Not a directory");
    case ENOSPC:
      return tr("No space left on device");
    case EEXIST:
      return tr("File exists");
    case EROFS:
      return tr("Read-only file system");
    case EMFILE:
      return tr("Too many open files");
    case EFBIG:
      return tr("File too large");
    case ENAMETOOLONG:
      return tr("File name too long");
    default:
      return verbatim(std::strerror(error));
  }
}

}  // namespace qkv

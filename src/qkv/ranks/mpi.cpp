// The plug-in: messages over MPI. The only file that includes mpi.h.
#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "qkv/ranks/link.h"

namespace {

class MpiLink : public qkv::Link {
 public:
  MpiLink() {
    MPI_Comm_dup(MPI_COMM_WORLD, &world_);
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
  }
  ~MpiLink() override {
    if (abandoned_) return;
    MPI_Comm_free(&world_);
    MPI_Finalize();
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    return std::string(name, static_cast<size_t>(length));
  }
  std::string library() const override {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(name, &length);
    const std::string whole(name, static_cast<size_t>(length));  // "Open MPI v4.1.4, package: Debian OpenMPI, ..."
    const std::string first = whole.substr(0, whole.find(','));
    const size_t v = first.find(" v");
    return v == std::string::npos ? first : first.substr(0, v + 1) + first.substr(v + 2);
  }

  int send(const void* data, size_t bytes, int to, int tag) override {
    const size_t slot = free_slot();
    const int code = MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, world_, &requests_[slot]);
    return code == MPI_SUCCESS ? static_cast<int>(slot) : -1;
  }
  int receive(void* data, size_t bytes, int from, int tag) override {
    const size_t slot = free_slot();
    const int code = MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, world_, &requests_[slot]);
    return code == MPI_SUCCESS ? static_cast<int>(slot) : -1;
  }
  // Requests that are done stay null, which MPI_Testsome skips, until their slot is used again.
  size_t finished(int* tickets, size_t most) override {
    if (requests_.empty()) return 0;
    size_t count = 0;
    indices_.resize(requests_.size());
    int done = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done, indices_.data(), MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS || done == MPI_UNDEFINED) done = 0;
    for (int i = 0; i < done; ++i) waiting_.push_back(indices_[static_cast<size_t>(i)]);
    for (; count < most && !waiting_.empty(); waiting_.pop_back()) {
      tickets[count++] = waiting_.back();
      free_.push_back(static_cast<size_t>(waiting_.back()));
    }
    return count;
  }
  void abandon() override { abandoned_ = true; }

 private:
  size_t free_slot() {
    if (free_.empty()) {
      free_.push_back(requests_.size());
      requests_.push_back(MPI_REQUEST_NULL);
    }
    const size_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool abandoned_ = false;
  std::vector<MPI_Request> requests_;
  std::vector<size_t> free_;
  std::vector<int> indices_, waiting_;  // finished, but not reported yet
};

}  // namespace

extern "C" [[gnu::visibility("default")]] qkv::Link* qkv_mpi_start(std::string& reason) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
    reason = "MPI_Init_thread failed";
    return nullptr;
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    reason = "this MPI does not support threads (MPI_THREAD_SERIALIZED)";
    MPI_Finalize();
    return nullptr;
  }
  return new MpiLink;
}

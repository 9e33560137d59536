// What placement needs to know of jobs, once for all that look alike. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_SHAPES_H_
#define MUSTER_BROKER_CORE_SHAPES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "broker/core/shape_queue.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::core {

struct Lane;

struct Shape {
  uint32_t id = 0;
  v1::JobSpec spec;   // see InsertShape
  std::string bytes;  // of the spec
  uint64_t jobs = 0;  // that have not ended
  ShapeQueue queue;   // those of them that are queued

  Lane* lane = nullptr;        // never null once it is in use
  std::optional<Turn> listed;  // where it stands in its lane
};

// The part of a spec that is its shape. It has no labels: those of a shape are the clusters that
// refused the job when it was submitted.
v1::JobSpec ShapeOf(const v1::JobSpec& spec);

class Shapes {
 public:
  // Null: no such shape. By its DeterministicBytes, or by its id.
  Shape* Find(std::string_view bytes) const;
  Shape* Find(uint32_t id) const;
  // The bytes must not be known yet.
  Shape* Add(std::string bytes, v1::JobSpec spec);
  // As Add, with the id that it had before.
  Shape* Restore(uint32_t id, std::string bytes, v1::JobSpec spec);

  // Forgets shapes without jobs if they are many and more than the others; calls `forget` for each
  // of them before.
  template <typename F>
  void Sweep(F forget) {
    if (unused_ <= kKeptUnused + (by_id_.size() - unused_)) return;
    for (auto it = by_id_.begin(); it != by_id_.end();) {
      Shape* shape = it->second.get();
      if (shape->jobs > 0) {
        ++it;
        continue;
      }
      forget(shape);
      by_bytes_.erase(shape->bytes);
      by_id_.erase(it++);
    }
    unused_ = 0;
  }

  void AddJob(Shape* shape) {
    if (shape->jobs++ == 0) --unused_;
  }
  void RemoveJob(Shape* shape) {
    if (--shape->jobs == 0) ++unused_;
  }

  template <typename F>
  void ForEach(F visit) const {
    for (const auto& [id, shape] : by_id_) visit(shape.get());
  }
  size_t size() const { return by_id_.size(); }

 private:
  // Shapes come and go with their jobs; keeping these spares the store a row for each return.
  static constexpr size_t kKeptUnused = 1024;

  absl::flat_hash_map<uint32_t, std::unique_ptr<Shape>> by_id_;
  absl::flat_hash_map<std::string, Shape*> by_bytes_;
  uint32_t next_id_ = 1;
  size_t unused_ = 0;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SHAPES_H_

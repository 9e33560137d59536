// Keeps groups of jobs that are alike to the core. There is one for each user's different
// Requirements that live jobs have.
//
// A group costs about 500 B beside its jobs, so that a million jobs may all be different. Owner:
// the core's thread.
#ifndef MUSTER_BROKER_CORE_GROUPS_H_
#define MUSTER_BROKER_CORE_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "broker/core/job_line.h"
#include "broker/core/requirements.h"

namespace muster::core {

// Names a user while there is an account of the user (accounts.h).
using UserIndex = uint32_t;

struct Lane;
struct UserQueue;

struct Group {
  uint32_t id = 0;
  UserIndex user = 0;
  Requirements requirements;
  uint64_t jobs = 0;  // number of its jobs that have not ended
  JobLine line;       // its jobs that are queued and may be placed

  UserQueue* queue = nullptr;  // its user's queue within its lane; never null once it is in use
  std::optional<Turn> listed;  // its place in its queue; nothing: its line is empty
  uint64_t fitted_at = 0;      // the version of Refits that its lane is right for, at least

  Lane* lane() const;  // in waiting_tree.h; the group must be in use
};

class Groups {
 public:
  // Returns null if there is no such group.
  Group* Find(const Requirements& requirements, UserIndex user) const;
  // Returns null if no group has this id, which must be below end_id().
  Group* at(uint32_t id) const { return by_id_[id].get(); }
  // It must not be known yet. Ids of groups that are gone are used again.
  Group* Add(Requirements requirements, UserIndex user);
  // The group must have no jobs.
  void Remove(Group* group);

  template <typename F>
  void ForEach(F visit) const {
    for (const auto& group : by_id_) {
      if (group != nullptr) visit(group.get());
    }
  }
  size_t size() const { return index_.size(); }
  size_t end_id() const { return by_id_.size(); }

 private:
  struct Key {
    const Requirements& requirements;
    UserIndex user;
  };
  static Key KeyOf(const Group* group) { return {group->requirements, group->user}; }
  static Key KeyOf(const Key& key) { return key; }
  struct Hash {
    using is_transparent = void;
    template <typename T>
    size_t operator()(const T& of) const {
      const Key key = KeyOf(of);
      return absl::HashOf(key.requirements, key.user);
    }
  };
  struct Equal {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const Key left = KeyOf(a), right = KeyOf(b);
      return left.user == right.user && left.requirements == right.requirements;
    }
  };

  std::vector<std::unique_ptr<Group>> by_id_;  // null: free
  std::vector<uint32_t> free_;
  absl::flat_hash_set<Group*, Hash, Equal> index_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_GROUPS_H_

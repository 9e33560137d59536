// Says which jobs a reader of the store may see. A value; any thread.
#ifndef MUSTER_BROKER_STORE_SCOPE_H_
#define MUSTER_BROKER_STORE_SCOPE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/filter.h"

namespace muster::store {

// Every read of jobs needs one; a job outside of it does not exist for that reader. It has no
// default on purpose.
class Scope {
 public:
  // Takes every job, for the broker's work and for principals with that right (app/rights.h).
  static Scope All() { return Scope(/*is_all=*/true, {}, {}); }
  // Takes the jobs of these projects and of these users; without either, no job.
  static Scope Of(std::vector<std::string> projects, std::vector<std::string> users) {
    return Scope(/*is_all=*/false, std::move(projects), std::move(users));
  }
  // Adds to the same scope, of these projects, the jobs of the user.
  Scope With(std::string user, std::vector<std::string> own_in) && {
    own_user_ = std::move(user);
    own_in_ = std::move(own_in);
    return std::move(*this);
  }

  bool is_all() const { return is_all_; }
  bool Contains(std::string_view project, std::string_view user) const;
  friend bool operator==(const Scope&, const Scope&) = default;
  // Returns a filter that takes the same jobs, but only within the scope.
  contract::Filter Narrow(contract::Filter filter) const;

 private:
  Scope(bool is_all, std::vector<std::string> projects, std::vector<std::string> users)
      : is_all_(is_all), projects_(std::move(projects)), users_(std::move(users)) {}

  bool is_all_;
  std::vector<std::string> projects_;
  std::vector<std::string> users_;
  std::string own_user_;
  std::vector<std::string> own_in_;  // projects
};

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SCOPE_H_

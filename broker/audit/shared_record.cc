#include "broker/audit/shared_record.h"

#include <charconv>
#include <cstdint>

namespace muster::audit {
namespace {

// The end of a list that is too long.
constexpr char kMore = '.';

bool DoTheSame(const Record& a, const Record& b) {
  return a.user == b.user && a.role == b.role && a.credential == b.credential &&
         a.origin == b.origin && a.action == b.action && a.target == b.target &&
         a.result == b.result && a.left_out == 0 && b.left_out == 0;
}

// Returns the number at the beginning of a text; 0 if there is none.
uint64_t NumberAt(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

bool Share(const Record& call, Record* last) {
  if (call.jobs.empty() || last->jobs.empty() || call.jobs.back() == kMore ||
      last->jobs.back() == kMore) {
    return false;
  }
  if (!DoTheSame(call, *last) || last->jobs.size() + 1 + call.jobs.size() > kMaxJobsBytes) {
    return false;
  }
  AddJobs(call.jobs, &last->jobs);
  return true;
}

void AddJobs(std::string_view more, std::string* jobs) {
  const size_t begin = jobs->find_last_of(',') + 1;  // of the last part; npos + 1 is 0
  const size_t dash = jobs->find('-', begin);
  const size_t last = dash == jobs->npos ? begin : dash + 1;
  if (NumberAt(more) != NumberAt(std::string_view(*jobs).substr(last)) + 1) {
    jobs->append(1, ',').append(more);
    return;
  }
  // "3-4" and "5-7" are "3-7"; "4" and "5,9" are "4-5,9".
  const size_t end = more.find_first_of(",-");
  const bool is_range = end != more.npos && more[end] == '-';
  if (dash == jobs->npos && !is_range) {
    jobs->append(1, '-').append(more);
    return;
  }
  if (dash != jobs->npos) jobs->resize(dash);
  if (is_range) {
    jobs->append(more.substr(end));
  } else {
    jobs->append(1, '-').append(more);
  }
}

}  // namespace muster::audit

// A record of the audit log.
#ifndef MUSTER_BROKER_AUDIT_RECORD_H_
#define MUSTER_BROKER_AUDIT_RECORD_H_

#include <cstdint>
#include <string>

namespace muster::audit {

// The fields as in muster/v1/audit_service.proto.
struct Record {
  uint64_t seq = 0;    // given when it is written
  int64_t micros = 0;  // since 1970
  std::string user = {};
  std::string role = {};
  std::string credential = {};
  std::string origin = {};
  std::string action = {};
  std::string jobs = {};
  std::string target = {};
  std::string result = {};
  uint64_t left_out = 0;
  std::string hash = {};  // given when it is written; 32 bytes
};

}  // namespace muster::audit

#endif  // MUSTER_BROKER_AUDIT_RECORD_H_

// Reports the free GPUs of a host, for the broker and people.
#ifndef MUSTER_AGENTS_MACHINES_FREE_GPUS_H_
#define MUSTER_AGENTS_MACHINES_FREE_GPUS_H_

#include <cstdint>
#include <string>

#include "agents/machines/scheduling/ledger.h"
#include "google/protobuf/map.h"
#include "muster/v1/cluster.pb.h"

namespace muster::machines {

// Adds what is free of each type that the host has.
void AddFreeGpus(const Ledger& ledger, uint32_t host,
                 google::protobuf::Map<std::string, v1::FreeGpus>* free_gpus);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_FREE_GPUS_H_

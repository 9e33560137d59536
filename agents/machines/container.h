// Makes a run's container by the tool that a host has, with the words that each tool takes. Pure.
//
// The program in it is started by a script in the run's directory (kEnterFile), which has the run's
// variables. These are secrets, and no tool takes all of them, whatever is in them, without a
// command line that everybody can read. So the image needs /bin/sh.
//
// Uses nothing but the standard library: the supervisor links it.
#ifndef MUSTER_AGENTS_MACHINES_CONTAINER_H_
#define MUSTER_AGENTS_MACHINES_CONTAINER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::machines {

inline constexpr char kPodman[] = "podman";
inline constexpr char kDocker[] = "docker";
inline constexpr char kEnroot[] = "enroot";
inline constexpr char kApptainer[] = "apptainer";

// These files are in a run's directory: the script, the tool's answer about its image, and the
// containers that may be there, as "TOOL NAME" in each line.
inline constexpr char kEnterFile[] = "enter";
inline constexpr char kContainerLogFile[] = "container-log";
inline constexpr char kContainersFile[] = "containers";
// Files there, too: the image as enroot and apptainer convert it, and conmon's note of a kill for
// memory.
inline constexpr char kEnrootImageFile[] = "image.sqsh";
inline constexpr char kApptainerImageFile[] = "image.sif";
inline constexpr char kConmonOomFile[] = "oom";

using Words = std::vector<std::string>;

struct ContainerRequest {
  std::string tool;
  std::string image;      // "registry/repository:tag"
  std::string name;       // of the container
  std::string directory;  // the run's; the same in the container
  Words mounts;           // "SOURCE:TARGET", "SOURCE:TARGET:ro"
  Words gpus;             // their names
  bool has_amd_gpus = false;
  uint64_t memory_bytes = 0;  // of a tool that can set limits itself (WhyNoLimits); 0: none
  uint32_t cores = 0;
  uid_t user = 0;  // who has the run's files
  gid_t group = 0;
};

struct ContainerPlan {
  Words is_there;           // ends with 0 if the image need not be pulled; empty: it is pulled
  std::vector<Words> pull;  // one after the other
  Words run;                // comes before the program's own words
  Words was_oom;      // says "true" if the container was killed for memory; empty: cannot tell
  Words remove;       // what is left of the container; empty: nothing ever is
  Words environment;  // "NAME=value", of the tool
};

ContainerPlan PlanContainer(const ContainerRequest& request);

// Returns the variables of this process that tools need, "NAME=value": the rest may be secrets.
Words ToolVariables();

// Returns whether the tool holds the container to its limits; otherwise it stays in the run's own
// group.
bool SetsLimits(std::string_view tool);

// Returns the command that asks such a tool which limits it can set for this user.
Words LimitsQuestionOf(std::string_view tool);

// Returns "", or, from the tool's answer, the reason that a container cannot be held to these. 0:
// no limit.
std::string WhyNoLimits(std::string_view tool, const std::string& answer, uint64_t memory_bytes,
                        uint32_t cores);

// Returns the command that removes a container of that name; empty: the tool leaves none.
Words RemovalOf(std::string_view tool, const std::string& name);
// Returns the command that lists the names of containers, one in each line, that one among them if
// it is there.
Words ListingOf(std::string_view tool, const std::string& name);

// Returns the script: variables and directory first, then its arguments as a program, which gets
// the TERM that the script gets. Names that no shell can export are left out. `is_first`: it is
// process 1, which has no default for TERM.
std::string EnterScript(const Words& environment, const std::string& working_directory,
                        bool is_first);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_CONTAINER_H_

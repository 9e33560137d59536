#include "clients/cli/slurm/sbatch_flags.h"

#include <string_view>
#include <utility>

namespace muster::cli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kSbatchFlags[] = {
    {"working_directory", "--chdir"},
    {"time_limit", "--time"},
    {"command.script_arguments", "the script's arguments"},
    {"command.script", "the script"},
    {"resources.cpu_millis", "--cpus-per-task"},
    {"resources.cpus", "--cpus-per-task"},
    {"resources.memory_bytes", "--mem"},
    {"resources.memory", "--mem"},
    {"resources.gpus", "--gres"},
    {"placement.clusters", "--clusters"},
    {"placement.pool", "--partition"},
    {"slurm.batch_script.output", "--output"},
    {"slurm.batch_script.error", "--error"},
    {"slurm.batch_script.input", "--input"},
    {"slurm.batch_script.append", "--open-mode"},
    {"slurm.batch_script.environment", "--export"},
    {"slurm.batch_script", "the script"},
    {"slurm.partition", "--partition"},
    {"slurm.account", "--account"},
    {"slurm.qos", "--qos"},
    {"slurm.dependency", "--dependency"},
    {"slurm.mail_type", "--mail-type"},
    {"slurm.mail_user", "--mail-user"},
    {"slurm.reservation", "--reservation"},
    {"slurm.constraint", "--constraint"},
    {"slurm.nodelist", "--nodelist"},
    {"slurm.tasks_per_node", "--ntasks-per-node"},
    {"slurm.exclusive", "--exclusive"},
    {"slurm.exclude", "--exclude"},
    {"slurm.requeue", "--requeue"},
    {"slurm.comment", "--comment"},
    {"slurm.licenses", "--licenses"},
    {"slurm.signal", "--signal"},
    {"slurm.gres", "--gres"},
    {"slurm.nice", "--nice"},
    {"slurm.container.env", "--container-env"},
    {"slurm.container.name", "--container-name"},
    {"slurm.extra_options", "the other options"},
    {"name", "--job-name"},
    {"nodes", "--nodes"},
    {"image", "--container-image"},
    {"mounts", "--container-mounts"},
    {"env", "--export"},
};

}  // namespace

FieldFlags SbatchFlags() { return {.names = kSbatchFlags, .are_fields_known = false}; }

}  // namespace muster::cli

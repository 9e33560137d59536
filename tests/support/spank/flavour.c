/* A site's own SPANK plug-in: sbatch gets --flavour=NAME and --mild, and the job finds them as FLAVOUR and MILD. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

SPANK_PLUGIN(flavour, 1)

static char* flavour = NULL;
static int is_mild = 0;

static int on_flavour(int value, const char* argument, int remote) {
  (void)value;
  (void)remote;
  free(flavour);
  flavour = strdup(argument);
  return 0;
}

static int on_mild(int value, const char* argument, int remote) {
  (void)argument;
  (void)remote;
  is_mild = value;
  return 0;
}

int slurm_spank_init(spank_t spank, int argc, char** argv) {
  static struct spank_option options[] = {
      {"flavour", "NAME", "[flavour] what the job tastes of", 1, 0, on_flavour},
      {"mild", NULL, "[flavour] less of it", 0, 1, on_mild},
  };
  (void)argc;
  (void)argv;
  for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); ++i) {
    if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS) return -1;
  }
  return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char** argv) {
  (void)argc;
  (void)argv;
  if (flavour != NULL) spank_setenv(spank, "FLAVOUR", flavour, 1);
  if (is_mild) spank_setenv(spank, "MILD", "yes", 1);
  return 0;
}

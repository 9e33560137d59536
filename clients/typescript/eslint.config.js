import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["src/gen", "dist", "dist-test"] },
  ...tseslint.configs.recommendedTypeChecked,
  { languageOptions: { parserOptions: { projectService: true } } },
  {
    // The promise of test() is for nobody.
    files: ["test/**"],
    rules: {
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", name: "test", package: "node:test" }] }],
    },
  },
);

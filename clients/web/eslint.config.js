import tseslint from "typescript-eslint";

// As in clients/typescript.
export default tseslint.config(
  ...tseslint.configs.recommendedTypeChecked,
  { languageOptions: { parserOptions: { projectService: true } } },
);

// The rules of Obsidian's review, and its check of the manifest.
import { defineConfig, globalIgnores } from "eslint/config";
import obsidianmd from "eslint-plugin-obsidianmd";
import tseslint from "typescript-eslint";

export default defineConfig([
  globalIgnores(["main.js", "dist", "tests", "lint", "node_modules"]),
  ...obsidianmd.configs.recommended,
  { files: ["src/**/*.ts"], languageOptions: { parserOptions: { projectService: true } } },
  {
    files: ["manifest.json"],
    plugins: { obsidianmd },
    languageOptions: { parser: tseslint.parser, parserOptions: { extraFileExtensions: [".json"] } },
    rules: { "obsidianmd/validate-manifest": "error" },
  },
]);

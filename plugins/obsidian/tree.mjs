// dist/repository: a repository of the plugin alone, as the community directory wants it.
import { cpSync, mkdirSync, rmSync } from "node:fs";

const KEPT = [
  ".gitignore", ".npmrc", "LICENSE", "README.md", "esbuild.config.mjs", "lint", "manifest.json", "package-lock.json",
  "package.json", "src", "styles.css", "tests", "tree.mjs", "tsconfig.host.json", "tsconfig.json", "versions.json",
];
const folder = "dist/repository";
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const isOurs = (path) => !path.split(/[\\/]/).includes("node_modules");
for (const name of KEPT) cpSync(name, `${folder}/${name}`, { recursive: true, filter: isOurs });

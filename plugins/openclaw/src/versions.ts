/** Whether plugin and engine fit together. */

/** What to upgrade, if the first two numbers of the versions differ; a third number never changes a tool. */
export function mismatch(plugin: string, engine: string): string | undefined {
  const [ours, theirs] = [numbers(plugin), numbers(engine)];
  const difference = ours[0] - theirs[0] || ours[1] - theirs[1];
  if (difference === 0) return undefined;
  const advice =
    difference > 0
      ? "run `pipx upgrade obsidian-rag`, then `obsidian-rag serve --stop`"
      : "run `openclaw plugins update obsidian-rag`";
  return `The plugin is version ${plugin}, obsidian-rag is ${engine}: ${advice}.`;
}

function numbers(version: string): [number, number] {
  const [major = "", minor = ""] = version.split(".");
  return [Number.parseInt(major, 10) || 0, Number.parseInt(minor, 10) || 0];
}

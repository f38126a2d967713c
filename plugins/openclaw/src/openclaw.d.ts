// Lets the plugin compile without OpenClaw's 650 MB; `make test-openclaw` compiles it against the real types too.
declare module "openclaw/plugin-sdk/plugin-entry" {
  export function definePluginEntry<Api>(entry: {
    id: string;
    name: string;
    description: string;
    register(api: Api): void;
  }): unknown;
}

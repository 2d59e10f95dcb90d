/**
 * The secret that each call brings.
 *
 * It arrives in the fragment of the address, and stays in this tab. A tab that was opened from a link asks the other tabs of the
 * console for it. Only pages of this server share the channel.
 */

const KEY = "asya-console-secret";
const CHANNEL = "asya-console";
const ANSWER_MILLISECONDS = 500;

type Message = { wants: true } | { secret: string };

/** Take the secret from the fragment and remove it from the address; else take that of the tab. */
function ownSecret(): string | null {
  const given = /^#secret=([A-Za-z0-9_-]+)$/.exec(location.hash)?.[1];
  if (given === undefined) return sessionStorage.getItem(KEY);
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", "#/tasks");
  return given;
}

/** Ask the other tabs for the secret; null if none answers. */
function secretOfAnotherTab(channel: BroadcastChannel): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), ANSWER_MILLISECONDS);
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if (!("secret" in data)) return;
      clearTimeout(timer);
      sessionStorage.setItem(KEY, data.secret);
      resolve(data.secret);
    };
    channel.postMessage({ wants: true } satisfies Message);
  });
}

/** Return the secret of this console; null if neither this tab nor another has it. */
export async function findSecret(): Promise<string | null> {
  const channel = new BroadcastChannel(CHANNEL);
  const secret = ownSecret() ?? (await secretOfAnotherTab(channel));
  if (secret !== null) {
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if ("wants" in data) channel.postMessage({ secret } satisfies Message);
    };
  }
  return secret;
}

// The account menu: who is signed in, with which role, and sign-out.

import { useAccessChange, useSession } from "../../data/access.ts";
import { useCluster } from "../../data/queries.ts";
import { showAccess } from "../../state/access.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import { Menu, MenuHead, MenuItem, MenuSeparator } from "../../widgets/menu.tsx";

export function UserMenu({ onSignedOut }: { onSignedOut: () => void }) {
  const { value: session } = useSession();
  const hides = useCluster().value?.hides_names;
  const change = useChangeScreen();
  const doChange = useAccessChange();
  if (!session?.who) return null;
  const { who } = session;
  const name = who.title ?? who.login ?? (session.is_open ? "Not signed in" : "Server token");
  const leave = (everywhere: boolean) => {
    doChange((client) => (everywhere ? client.signOutEverywhere() : client.signOut())).then(onSignedOut, onSignedOut);
  };
  return (
    <Menu trigger={<IconButton icon="user" label={`Account: ${name}`} />}>
      <MenuHead
        title={name}
        detail={`${session.is_open ? "No sign-in required" : describe(who)}${hides ? " · others' names are hidden" : ""}`}
      />
      <MenuSeparator />
      <MenuItem onSelect={() => change(showAccess("mine"))}>My tokens</MenuItem>
      {who.role === "admin" && (
        <>
          <MenuItem onSelect={() => change(showAccess("accounts"))}>Accounts</MenuItem>
          <MenuItem onSelect={() => change(showAccess("audit"))}>Audit log</MenuItem>
        </>
      )}
      {who.way !== null && who.way !== "proxy" && (
        <>
          <MenuSeparator />
          <MenuItem onSelect={() => leave(false)}>Sign out</MenuItem>
          <MenuItem onSelect={() => leave(true)}>Sign out everywhere</MenuItem>
        </>
      )}
    </Menu>
  );
}

function describe({
  login,
  title,
  role,
  projects,
}: {
  login: string | null;
  title: string | null;
  role: string;
  projects: readonly string[];
}): string {
  const leads = role === "lead" && projects.length > 0 ? ` of ${projects.join(", ")}` : "";
  return `${title && login ? `${login} · ` : ""}${role}${leads}`;
}

// The page: providers, the shell, and the view the screen names.

import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Suspense } from "react";
import { type Services, ServicesContext } from "../data/services.ts";
import type { ScreenStore } from "../state/screen-store.ts";
import { ScreenContext, useScreen } from "../state/use-screen.ts";
import { ClockContext } from "../widgets/clock-context.ts";
import { TipLayer } from "../widgets/tip-layer.tsx";
import styles from "./app.module.css";
import { CrashScreen } from "./crash-screen.tsx";
import { type Session, useSignInNeeded } from "./session.ts";
import { Header } from "./shell/header.tsx";
import { Notices } from "./shell/notices.tsx";
import { SignIn } from "./sign-in.tsx";
import { VIEWS } from "./views.ts";

interface AppProps {
  readonly services: Services;
  readonly screen: ScreenStore;
  readonly session: Session;
  readonly queries: QueryClient;
}

export function App({ services, screen, session, queries }: AppProps) {
  const signIn = async (token: string) => {
    await services.client.signIn(token);
    session.setNeeded(false);
    services.live.reopen();
    await queries.resetQueries();
  };
  return (
    <CrashScreen>
      <QueryClientProvider client={queries}>
        <ServicesContext value={services}>
          <ClockContext value={services.clock}>
            <ScreenContext value={screen}>
              <Page session={session} signIn={signIn} />
              <TipLayer />
            </ScreenContext>
          </ClockContext>
        </ServicesContext>
      </QueryClientProvider>
    </CrashScreen>
  );
}

function Page({ session, signIn }: { session: Session; signIn: (token: string) => Promise<void> }) {
  const isSignInNeeded = useSignInNeeded(session);
  const { view } = useScreen();
  const View = VIEWS.find(({ name }) => name === view)?.component;
  if (isSignInNeeded) return <SignIn onSignIn={signIn} />;
  return (
    <div className={styles.page}>
      <Header />
      <Notices />
      <div className={styles.view}>
        <CrashScreen>
          <Suspense>{View && <View />}</Suspense>
        </CrashScreen>
      </div>
    </div>
  );
}

// The page: providers, the shell, and the view the screen names.

import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Suspense } from "react";
import type { SignIn as SignInForm } from "../api/generated.ts";
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
  const enter = async (form: SignInForm) => {
    await services.client.access.signIn(form);
    session.setNeeded(false);
    services.live.reopen();
    await queries.resetQueries();
  };
  const leave = () => {
    queries.clear();
    session.setNeeded(true);
  };
  return (
    <CrashScreen>
      <QueryClientProvider client={queries}>
        <ServicesContext value={services}>
          <ClockContext value={services.clock}>
            <ScreenContext value={screen}>
              <Page session={session} onEnter={enter} onLeave={leave} />
              <TipLayer />
            </ScreenContext>
          </ClockContext>
        </ServicesContext>
      </QueryClientProvider>
    </CrashScreen>
  );
}

interface PageProps {
  readonly session: Session;
  onEnter(form: SignInForm): Promise<void>;
  onLeave(): void;
}

function Page({ session, onEnter, onLeave }: PageProps) {
  const isSignInNeeded = useSignInNeeded(session);
  const { view } = useScreen();
  const View = VIEWS.find(({ name }) => name === view)?.component;
  if (isSignInNeeded) return <SignIn failure={session.failure} hasEnded={session.hasEnded()} onSignIn={onEnter} />;
  return (
    <div className={styles.page}>
      <Header onSignedOut={onLeave} />
      <Notices />
      <div className={styles.view}>
        <CrashScreen key={view}>
          <Suspense>{View && <View />}</Suspense>
        </CrashScreen>
      </div>
    </div>
  );
}

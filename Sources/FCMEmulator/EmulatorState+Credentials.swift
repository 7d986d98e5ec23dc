import Foundation
import Synchronization

/// Service accounts and the access tokens issued to them.
extension EmulatorState {
    func account(email: String) -> ServiceAccount? {
        self.contents.withLock { $0.accounts[email] }
    }

    func add(_ account: ServiceAccount) {
        self.contents.withLock { $0.accounts.add(account) }
    }

    /// Forgets an account; tokens issued to it stay valid, as they do in reality.
    ///
    /// - Returns: whether there was one.
    func removeAccount(email: String) -> Bool {
        self.contents.withLock { $0.accounts.remove(email) }
    }

    /// Whether some account belongs to the project.
    func knows(project: String) -> Bool {
        self.contents.withLock { $0.accounts.knows(project: project) }
    }

    /// Issues an access token.
    ///
    /// - Returns: the token, and its life in seconds.
    func issueToken(for grant: AccessGrant, now: Date) -> (String, Int) {
        self.contents.withLock { contents in
            let seconds = contents.settings.tokenLifetimeSeconds
            let expiry = now.addingTimeInterval(TimeInterval(seconds))
            return (contents.accessTokens.issue(grant, expiry: expiry), seconds)
        }
    }

    /// What an access token is worth.
    func access(with token: String, now: Date) -> AccessTokens.Access {
        self.contents.withLock { $0.accessTokens.access(with: token, now: now) }
    }

    /// Makes every access token issued so far invalid.
    func revokeTokens() {
        self.contents.withLock { $0.accessTokens.revokeAll() }
    }
}

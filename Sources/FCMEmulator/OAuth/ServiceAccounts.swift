/// The service accounts whose assertions are accepted, one key each.
struct ServiceAccounts {
    private var accounts: [String: ServiceAccount] = [:]

    subscript(email: String) -> ServiceAccount? { self.accounts[email] }

    /// Adds an account, in place of one with the same address.
    mutating func add(_ account: ServiceAccount) {
        self.accounts[account.email] = account
    }

    /// Forgets an account.
    ///
    /// - Returns: whether there was one.
    mutating func remove(_ email: String) -> Bool {
        self.accounts.removeValue(forKey: email) != nil
    }

    /// Whether some account belongs to the project.
    func knows(project: String) -> Bool {
        self.accounts.values.contains { $0.projectID == project }
    }
}

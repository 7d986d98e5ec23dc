/// What is to be done to have all that a store keeps sealed by one master key.
///
/// Pure: it reads nothing and writes nothing.
package struct Rewrapping: Sendable {
    /// One secret's exchange of one wrapped key for another.
    package struct Exchange: Sendable, Hashable {
        /// The secret as it was read.
        package let old: SealedSecret
        /// The same secret under the new master key.
        package let new: Envelope
    }

    /// Secrets whose data key is still wrapped by the previous master key.
    package private(set) var exchanges: [Exchange] = []
    /// How many need nothing.
    package private(set) var currentCount = 0
    /// Those that open under neither key.
    package private(set) var unopened: [SealedSecret] = []

    /// Looks at all that is sealed.
    ///
    /// - Parameters:
    ///   - secrets: everything that a store keeps sealed.
    ///   - masterKey: the key to seal by, and the one before it.
    ///   - progress: is told how many secrets have been looked at, each time.
    package init(
        _ secrets: [SealedSecret],
        under masterKey: MasterKey,
        progress: (_ done: Int) -> Void = { _ in }
    ) {
        for (index, secret) in secrets.enumerated() {
            do {
                if let new = try secret.envelope.rewrapped(for: secret.context, under: masterKey) {
                    self.exchanges.append(Exchange(old: secret, new: new))
                } else {
                    self.currentCount += 1
                }
            } catch {
                self.unopened.append(secret)
            }
            progress(index + 1)
        }
    }
}

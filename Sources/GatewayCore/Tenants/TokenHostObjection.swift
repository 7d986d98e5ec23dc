/// Why access tokens may not be asked for at an address.
package enum TokenHostObjection: Sendable, Hashable {
    /// The way there is not encrypted, and leads off this machine.
    case unencrypted
    /// The operator's list of hosts does not have it.
    case unlisted
}

/// Why access tokens may not be asked for at an address.
package enum TokenHostObjection: Sendable, Hashable {
    /// The way there is not encrypted, and leads to a host for which that is not allowed.
    case unencrypted
    /// The operator's list of hosts does not have it.
    case unlisted
}

/// How a send's recipients stand on the list of retired tokens.
package enum RetiredTokenScreening: Sendable, Hashable {
    /// None is on the list.
    case clear
    /// None is to be refused, but some are on the list.
    case listed
    /// Those whose entry is `true` are to be refused, in the request's order.
    case refused([Bool])
}

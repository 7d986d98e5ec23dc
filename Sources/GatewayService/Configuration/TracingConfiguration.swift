/// What others are told of the traces that requests belong to.
package struct TracingConfiguration: Sendable, Equatable {
    /// Which upstream servers are told.
    package enum Propagation: String, Sendable, CaseIterable {
        /// All of them, Google's among them.
        case all
        /// None.
        case none
    }

    /// Which upstream servers are told.
    package var propagate: Propagation

    /// Creates the section; what is not named has its default.
    package init(propagate: Propagation = .all) {
        self.propagate = propagate
    }
}

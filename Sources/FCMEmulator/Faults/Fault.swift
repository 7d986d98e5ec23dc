/// A fault to be played for the next requests that match.
package struct Fault: Sendable, Equatable {
    /// Path of the requests, without query; nil for any.
    package var path: String?

    /// A recipient of the requests, exactly as in `to`, `registration_ids`, `registration_id`, `message.token`,
    /// `message.fid` or `registration_tokens`, or in the path of a subscription; nil for any.
    package var token: String?

    /// How many requests it is played for, at least 1.
    package var times: Int

    /// What happens.
    package var action: FaultAction

    /// Creates a fault.
    ///
    /// - Parameters:
    ///   - path: path of the requests it is played for, nil for any.
    ///   - token: a recipient of these requests, nil for any.
    ///   - times: how many requests it is played for, at least 1.
    ///   - action: what happens.
    package init(path: String? = nil, token: String? = nil, times: Int = 1, action: FaultAction) {
        precondition(times >= 1, "times must be at least 1, not \(times)")
        self.path = path
        self.token = token
        self.times = times
        self.action = action
    }

    func matches(path: String, tokens: [String]) -> Bool {
        if let expected = self.path, expected != path { return false }
        if let expected = self.token, !tokens.contains(expected) { return false }
        return true
    }
}

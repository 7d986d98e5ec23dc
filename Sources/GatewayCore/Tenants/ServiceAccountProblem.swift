/// Why a service-account file can't be used.
package struct ServiceAccountProblem: Error, Sendable, Hashable {
    /// The member at fault; `nil` where the whole is no such file.
    package let member: String?
    /// What is wrong with it, in words for an operator; never holds its value.
    package let message: String

    init(_ member: String?, _ message: String) {
        self.member = member
        self.message = message
    }
}

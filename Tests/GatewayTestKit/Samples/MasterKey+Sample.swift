package import GatewayCore

extension MasterKey {
    /// A master key that is the same for the same name and differs between names.
    ///
    /// - Throws: nothing in practice: a sample secret has the length of a master key.
    package static func sample(_ name: String = "master") throws -> MasterKey {
        guard let key = MasterKey(.sample(name)) else { throw SampleError(what: "master key \(name)") }
        return key
    }
}

/// What both listeners prove themselves with.
package struct ListenerCertificates: Sendable {
    /// The data listener's; `nil` where it speaks plain HTTP.
    package var data: ListenerCertificate?
    /// The admin listener's; `nil` where it speaks plain HTTP.
    package var admin: ListenerCertificate?

    /// Two listeners that speak plain HTTP.
    package init() {}

    /// Reads the files that a configuration names.
    ///
    /// - Throws: what is wrong with the files, of each listener the first fault.
    package init(_ configuration: GatewayConfiguration) throws(ConfigurationProblems) {
        var problems: [ConfigurationProblem] = []
        func read(_ files: TLSFilesConfiguration?, _ section: String) -> ListenerCertificate? {
            guard let files else { return nil }
            do {
                return try ListenerCertificate(files, section: section)
            } catch {
                problems += error.problems
                return nil
            }
        }
        self.data = read(configuration.http.tls, "http")
        self.admin = read(configuration.admin.tls, "admin")
        if !problems.isEmpty { throw ConfigurationProblems(problems) }
    }
}

/// Looks at variables that other programs heed and the gateway does not.
enum EnvironmentCheck {
    private static let proxies = ["http_proxy", "https_proxy", "all_proxy"]

    /// Examines the process's variables.
    static func examine(_ environment: [String: String]) -> [Finding] {
        // Their values may hold a password.
        let set = environment.keys.filter { name in
            Self.proxies.contains(name.lowercased()) && environment[name]?.isEmpty == false
        }
        guard !set.isEmpty else { return [.ok(.environment, nil, "no proxy is set")] }
        return [
            .warning(
                .environment,
                set.sorted().joined(separator: ", "),
                "is set, but the gateway connects to FCM directly and never by a proxy",
                "Let the gateway's machine reach FCM itself; if only a proxy can, set upstream endpoints to one that "
                    + "answers for FCM"
            )
        ]
    }
}

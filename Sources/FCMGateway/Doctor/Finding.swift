/// What one check of `doctor` saw.
struct Finding: Sendable, Equatable {
    /// How it is judged.
    enum Status: String, Sendable, CaseIterable, Comparable {
        /// As it should be.
        case ok
        /// The gateway works, but somebody should look at it.
        case warning
        /// The gateway does not work, or not as it was meant to.
        case problem

        /// Whether the left one is the lesser.
        static func < (left: Status, right: Status) -> Bool {
            Self.allCases.firstIndex(of: left) ?? 0 < Self.allCases.firstIndex(of: right) ?? 0
        }
    }

    /// The checks, in the order they are printed; programs know findings by these names.
    enum Check: String, Sendable, CaseIterable {
        /// The file and the variables.
        case configuration
        /// The files that hold secrets.
        case files
        /// The listeners' certificates.
        case certificates
        /// The directory of the gateway's own files.
        case dataDirectory = "data_directory"
        /// The database.
        case store
        /// The audit trail.
        case audit
        /// The machine's time.
        case clock
        /// What the machine or container has.
        case resources
        /// The listeners' ports.
        case listeners
        /// The tenants' credentials.
        case credentials
        /// The way to FCM.
        case upstream
        /// Variables that other programs heed.
        case environment
    }

    /// The check.
    var check: Check
    /// What was looked at, such as a file or a tenant; nil where the check says it all.
    var subject: String?
    /// How it is judged.
    var status: Status
    /// What was seen; never holds a secret.
    var seen: String
    /// What to do; nil where there is nothing.
    var advice: String?

    /// All is well.
    static func ok(_ check: Check, _ subject: String?, _ seen: String) -> Finding {
        Finding(check: check, subject: subject, status: .ok, seen: seen)
    }

    /// Somebody should look at it.
    static func warning(_ check: Check, _ subject: String?, _ seen: String, _ advice: String) -> Finding {
        Finding(check: check, subject: subject, status: .warning, seen: seen, advice: advice)
    }

    /// Something is wrong.
    static func problem(_ check: Check, _ subject: String?, _ seen: String, _ advice: String) -> Finding {
        Finding(check: check, subject: subject, status: .problem, seen: seen, advice: advice)
    }
}

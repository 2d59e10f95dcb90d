"""The entry point of a job run: `python -m asya_spark --manifest URI --data-uri URI`."""

from asya_spark.main import main

if __name__ == "__main__":
    main()
